# Sourced by uv and python: `uv venv` and `python3 -m venv`, a folder that leads to the task's
# environment.

. /opt/stand-ins/lib/real-python.sh

place=.venv
while [ $# -gt 0 ]; do
    take_option "$@"
    if [ "$used" = 0 ]; then
        place=$1
        used=1
    fi
    shift "$used"
done
find_python python3
mkdir -p "$place/bin" || exit
place=$(cd "$place" && pwd)
for program in "${python%/*}"/*; do
    case $program in
    # A link to an interpreter would not find its packages, and uv is stood in for.
    */python* | */[Aa]ctivate* | */uv | */uvx) ;;
    # Of the system there is nothing to link to.
    /opt/*) ln -sf "$program" "$place/bin/" ;;
    esac
done
for name in python python3; do
    # What is there may be a link to the system's.
    rm -f "$place/bin/$name"
    # It has a pip already.
    printf '#!/bin/sh\ncase "$1 $2" in "-m ensurepip") exit ;; esac\nexec "%s" "$@"\n' \
        "$python" > "$place/bin/$name"
    chmod 755 "$place/bin/$name"
done
cat > "$place/bin/activate" << END
VIRTUAL_ENV='$place'
PATH="\$VIRTUAL_ENV/bin:\$PATH"
export VIRTUAL_ENV PATH
deactivate() {
    PATH="\${PATH#\$VIRTUAL_ENV/bin:}"
    unset VIRTUAL_ENV
}
END
nothing_installed
