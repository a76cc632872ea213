# Sourced by uv: `uv run`, with the environment of `--with` or the task's.

while [ $# -gt 0 ]; do
    take_option "$@"
    if [ "$used" = 0 ]; then break; fi
    last=$1
    shift "$used"
    if [ "$last" = -- ] || [ "$module" ]; then break; fi
done
if [ $# = 0 ]; then
    say 'name a command to run'
    exit 2
fi
if [ "$wanted" ]; then
    folder=$(prepared) || exit 1
    PATH=$folder/bin:$PATH
fi
case $module$1 in
yes*) exec python3 -m "$@" ;;
*.py) exec python3 "$@" ;;
*) exec "$@" ;;
esac
