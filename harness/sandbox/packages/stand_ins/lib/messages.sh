# Sourced by the stand-ins: what they say, and the way to the program each stands in for.

# On stderr, so that nothing that reads their output takes it for the program's.
say() {
    printf '%s (stand-in): %s\n' "${0##*/}" "$1" >&2
}

nothing_installed() {
    say 'nothing was installed: what a task needs is prepared before it starts'
}

not_prepared() {
    say "there is no network, and this was not prepared: $1"
}

# Becomes the real program, if this machine has it.
become() {
    program=$1
    shift
    for folder in /usr/local/bin /usr/bin /bin; do
        if [ -x "$folder/$program" ]; then exec "$folder/$program" "$@"; fi
    done
}
