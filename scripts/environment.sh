#!/usr/bin/env bash
# Makes the private environment of the action: the locked packages, each by its hash, and this very tree.
# RP_PYTHON: the interpreter, blank for the python3 on PATH; RP_ACTION: this repository; RP_ENVIRONMENT: where to.
# The only network is that of pip to the package index that the runner is set up with.
set -euo pipefail

python="${RP_PYTHON:-}"
if [ -z "${python}" ]; then
  python="$(command -v python3)" || { echo "no python3 on PATH; set the input python-version" >&2; exit 2; }
fi
wanted="$("${python}" -I -c '
import hashlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
if sys.version_info < (3, 11):
    sys.exit("replay-parity needs Python 3.11 or newer, this is " + sys.version.split()[0])
files = [root / "requirements" / "run.txt", root / "pyproject.toml"]
files += sorted(path for folder in ("src", "configs", "schemas") for path in (root / folder).rglob("*") if path.is_file())
digest = hashlib.sha256(sys.version.encode())
for path in files:
    if "__pycache__" not in path.parts:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
print(digest.hexdigest())
' "${RP_ACTION}")"

# One job may use the action several times.
if [ "$(cat "${RP_ENVIRONMENT}/.made-of" 2>/dev/null || true)" = "${wanted}" ]; then
  exit 0
fi
rm -rf "${RP_ENVIRONMENT}"
mkdir -p "${RP_ENVIRONMENT}"
cd "${RP_ENVIRONMENT}"
# The interpreter's own pip saves the seconds in which a venv gets one, where there is one.
if "${python}" -I -m pip --version > /dev/null 2>&1; then
  "${python}" -I -m venv --without-pip "${RP_ENVIRONMENT}"
  pip=("${python}" -I -m pip --python "${RP_ENVIRONMENT}/bin/python")
else
  "${python}" -I -m venv "${RP_ENVIRONMENT}"
  pip=("${RP_ENVIRONMENT}/bin/python" -I -m pip)
fi
"${pip[@]}" --quiet --disable-pip-version-check --no-input install --no-compile --no-deps --require-hashes \
  --only-binary :all: -r "${RP_ACTION}/requirements/run.txt"
# A copy: what runs must not change with the action's folder, which other jobs of the machine may share.
mkdir "${RP_ENVIRONMENT}/source"
for part in src configs schemas; do
  cp -R "${RP_ACTION}/${part}" "${RP_ENVIRONMENT}/source/"
done
packages="$("${RP_ENVIRONMENT}/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
printf '%s\n' "${RP_ENVIRONMENT}/source/src" > "${packages}/replay_parity.pth"
printf '%s' "${wanted}" > "${RP_ENVIRONMENT}/.made-of"
