//! The executable: arguments in, exit status out.

use std::process::ExitCode;

fn main() -> ExitCode {
    replay_parity_runner::cli::main(std::env::args_os().skip(1))
}
