# Sourced by uv and uvx: the options that say what a tool needs, and the environment that has it.
# An environment is at /opt/uvx/<key>: the first 16 hex digits of the SHA-256 of its requirements,
# one a line, sorted, none twice. `tool_key` in equipping.py makes the same. A version of Python that
# is asked for is one of them, `--python=3.12`.

. /opt/stand-ins/lib/messages.sh

newline='
'
wanted=
version=
from=
module=

need() {
    wanted=$wanted$1$newline
}

# a,b and a>=1,<2
need_each() {
    case $1 in
    *"["*) need "$1" ;;
    *) need "$(printf '%s' "$1" | sed 's/, *\([A-Za-z0-9]\)/\n\1/g')" ;;
    esac
}

need_all_of_file() {
    need "$(sed 's/[[:space:]]*#.*//; /^-/d; /^$/d' "$1")"
}

# need_python 3.12.1
need_python() {
    version=$(printf '%s' "$1" | sed -n 's/^[^0-9]*\([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p')
    version=${version:+--python=$version$newline}
}

# Takes the option that the words begin with: `used` is the number of its words, 0 for none.
take_option() {
    used=1
    case $1 in
    -w | --with)
        need_each "$2"
        used=2
        ;;
    --with=*) need_each "${1#*=}" ;;
    --with-requirements)
        need_all_of_file "$2"
        used=2
        ;;
    --with-requirements=*) need_all_of_file "${1#*=}" ;;
    --from)
        from=$2
        used=2
        ;;
    --from=*) from=${1#*=} ;;
    -m | --module) module=yes ;;
    -p | --python)
        need_python "$2"
        used=2
        ;;
    -p?* | --python=*) need_python "$1" ;;
    -[ifcPC] | --index | --default-index | --index-url | --extra-index-url | \
        --find-links | --constraints | --overrides | --directory | --project | --cache-dir | \
        --config-file | --env-file | --color | --link-mode | --resolution | --prerelease | \
        --exclude-newer | --index-strategy | --keyring-provider | --upgrade-package | \
        --refresh-package | --reinstall-package | --extra | --group | --only-group | --package | \
        --python-platform | --torch-backend | --prompt | --with-editable)
        used=2 ;;
    -w?*) need_each "${1#-w}" ;;
    -*) ;;
    *) used=0 ;;
    esac
}

# Whether the requirements that are read are met in this environment.
has_what_is_read() {
    "$1/bin/python" -m pip install --quiet --requirement /dev/stdin 2> /dev/null
}

# Prints the folder of the environment that has all that is wanted.
prepared() {
    key=$(printf '%s' "$version$wanted" | LC_ALL=C sort -u | sha256sum | cut -c 1-16)
    if [ -d "/opt/uvx/$key" ]; then
        echo "/opt/uvx/$key"
        return
    fi
    # Written otherwise than it was prepared, for instance `a>=1` in place of `a==1`.
    for folder in /opt/uvx/* /opt/venv; do
        if [ -d "$folder" ] && printf '%s' "$wanted" | has_what_is_read "$folder"; then
            echo "$folder"
            return
        fi
    done
    not_prepared "$(printf '%s' "$wanted" | tr '\n' ' ')"
    return 1
}
