# Shared by the scripts in this folder. Sourced, never run.

say() { printf '%s\n' "==> $*"; }

die() { printf '%s\n' "error: $*" >&2; exit 1; }

# python_find: print the first Python of 3.11 or newer.
python_find() {
    for candidate in "${PYTHON:-}" python3.13 python3.12 python3.11 python3 python; do
        [ -n "$candidate" ] || continue
        command -v "$candidate" >/dev/null 2>&1 || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    die "Python 3.11 or newer is needed; install it or set PYTHON=/path/to/python3"
}

# environment_make FILE: make .venv and install FILE into it, once per content of FILE.
environment_make() {
    requirements=$1
    stamp=.venv/$(basename "$requirements").$(cksum <"$requirements" | tr ' ' -)
    [ -e "$stamp" ] && return 0
    if [ ! -x .venv/bin/python ]; then
        say "making the Python environment in .venv"
        "$(python_find)" -m venv .venv || die "python -m venv failed (on Debian: apt install python3-venv)"
    fi
    say "installing $requirements (a few minutes the first time)"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$requirements" ||
        die "pip could not install $requirements"
    touch "$stamp"
}
