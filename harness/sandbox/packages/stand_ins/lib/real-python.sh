# Sourced: sets `python` to the interpreter that comes after the stand-ins in PATH.

# find_python NAME
find_python() {
    python=
    IFS=:
    for folder in $PATH; do
        if [ "$folder" != /opt/stand-ins/bin ] && [ -x "$folder/$1" ]; then
            python=$folder/$1
            break
        fi
    done
    unset IFS
}
