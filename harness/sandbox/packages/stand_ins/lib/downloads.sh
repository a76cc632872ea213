# Sourced by curl and wget: the one download that has a stand-in is uv's installer.

. /opt/stand-ins/lib/messages.sh

is_installer() {
    case $1 in
    *://astral.sh/uv/*install.sh | astral.sh/uv/*install.sh) return 0 ;;
    *://github.com/astral-sh/uv/releases/*/uv-installer.sh) return 0 ;;
    esac
    return 1
}

# give_installer FILE: `-` is the output.
give_installer() {
    say 'uv and uvx are stood in for, so the installer does little'
    if [ "$1" = - ]; then
        cat /opt/stand-ins/lib/uv-installer.sh
    else
        cat /opt/stand-ins/lib/uv-installer.sh > "$1"
    fi
}
