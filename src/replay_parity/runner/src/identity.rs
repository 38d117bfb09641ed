//! What this binary is: compiled in by the builder, never read from an editable file.

use aisimulate_core::replay::{CANONICAL_RESULT_EXCLUSIONS, CANONICAL_SCHEMA_VERSION};
use serde::Serialize;

/// Schema of the identity.
pub const IDENTITY_SCHEMA: &str = "replay-parity.runner-identity.v1";

/// What a binary that was built outside the builder says about itself.
const UNKNOWN: &str = "unknown";

/// Identity of the binary, as `identity` prints it and as every qualification repeats it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Identity {
    /// [`IDENTITY_SCHEMA`].
    pub schema: &'static str,
    /// Full git commit, or release with its checksum.
    pub revision: &'static str,
    /// SHA-256 over the runner's source, as the builder computes it.
    pub runner_source_sha256: &'static str,
    /// Features of `aisimulate-core` that the builder asked for.
    pub features: Vec<&'static str>,
    /// Toolchain, as the builder names it.
    pub toolchain: &'static str,
    /// Cargo profile, as the builder names it.
    pub profile: &'static str,
    /// `canonical_v1`, or `random` for the negative control.
    pub determinism: &'static str,
    /// Schema version that the engine writes into its records.
    pub canonical_schema_version: &'static str,
    /// JSON Pointers that the engine leaves out of its records.
    pub result_exclusions: Vec<&'static str>,
}

impl Identity {
    /// The identity that was compiled into this binary.
    #[must_use]
    pub fn compiled_in() -> Self {
        Self {
            schema: IDENTITY_SCHEMA,
            revision: option_env!("REPLAY_PARITY_REVISION").unwrap_or(UNKNOWN),
            runner_source_sha256: option_env!("REPLAY_PARITY_RUNNER_SOURCE_SHA256")
                .unwrap_or(UNKNOWN),
            features: features(option_env!("REPLAY_PARITY_FEATURES")),
            toolchain: option_env!("REPLAY_PARITY_TOOLCHAIN").unwrap_or(UNKNOWN),
            profile: option_env!("REPLAY_PARITY_PROFILE").unwrap_or(UNKNOWN),
            determinism: if cfg!(feature = "determinism-off") {
                "random"
            } else {
                "canonical_v1"
            },
            canonical_schema_version: CANONICAL_SCHEMA_VERSION,
            result_exclusions: CANONICAL_RESULT_EXCLUSIONS.to_vec(),
        }
    }
}

fn features(list: Option<&'static str>) -> Vec<&'static str> {
    list.unwrap_or(UNKNOWN)
        .split(',')
        .map(str::trim)
        .filter(|feature| !feature.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_a_comma_separated_list() {
        assert_eq!(features(Some("a, b,")), ["a", "b"]);
        assert!(features(Some("")).is_empty());
        assert_eq!(features(None), ["unknown"]);
    }

    #[test]
    fn determinism_follows_the_feature() {
        let expected = if cfg!(feature = "determinism-off") {
            "random"
        } else {
            "canonical_v1"
        };
        assert_eq!(Identity::compiled_in().determinism, expected);
    }

    #[test]
    fn exclusions_are_the_engines_own() {
        let identity = Identity::compiled_in();
        assert_eq!(identity.result_exclusions, CANONICAL_RESULT_EXCLUSIONS);
        assert_eq!(identity.canonical_schema_version, CANONICAL_SCHEMA_VERSION);
    }
}
