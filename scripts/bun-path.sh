# Prints the path of the pinned Bun and installs the locked packages; sourced by the other scripts, run from the project's root.
# A machine needs npm, or any Bun that can fetch the pinned one.
set -euo pipefail
bun_version=$(sed -n 's/.*"bun": "\([0-9.]*\)".*/\1/p' package.json)
bun=node_modules/bun/bin/bun.exe

bun_is_pinned() { [ -x "$1" ] && [ "$("$1" --version 2>/dev/null)" = "$bun_version" ]; }

if ! bun_is_pinned "$bun"; then
  if command -v bun >/dev/null 2>&1; then
    bun install --frozen-lockfile >&2
  elif command -v npm >/dev/null 2>&1; then
    # npm brings Bun alone, outside the project's packages; Bun then installs those from its own lock file.
    npm install --loglevel=error --no-audit --no-fund --no-package-lock --prefix .granary/bootstrap "bun@$bun_version" >&2
    .granary/bootstrap/node_modules/.bin/bun install --frozen-lockfile >&2
  else
    echo "granary needs npm or bun to set itself up, and found neither" >&2
    exit 1
  fi
  # The package puts its binary in place on first use when install scripts are off.
  node_modules/.bin/bun --version >/dev/null 2>&1 || true
  bun_is_pinned "$bun" || bun=.granary/bootstrap/node_modules/bun/bin/bun.exe
  bun_is_pinned "$bun" || { echo "could not install Bun $bun_version" >&2; exit 1; }
fi
if ! [ node_modules/.granary-lock -nt bun.lock ]; then
  "$bun" install --frozen-lockfile >&2
  touch node_modules/.granary-lock
fi
export PATH="$PWD/node_modules/.bin:$PATH"
