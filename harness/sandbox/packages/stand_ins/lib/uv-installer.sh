#!/bin/sh
# What is left of uv's installer: the files that scripts use after it.
set -eu
place=${UV_INSTALL_DIR:-${XDG_BIN_HOME:-$HOME/.local/bin}}
mkdir -p "$place" "$HOME/.cargo"
ln -sf /opt/stand-ins/bin/uv /opt/stand-ins/bin/uvx "$place/"
printf 'export PATH="%s:$PATH"\n' "$place" > "$place/env"
# Where it was before version 0.5.
cp "$place/env" "$HOME/.cargo/env"
