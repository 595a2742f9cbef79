# A headless Chromium for tests of pages: sourced after tap.sh. It is driven by Chromium's own protocol over two pipes
# (--remote-debugging-pipe; messages are JSON, each ended by a NUL).
#
#   browser_find            sets $chromium, or returns 1: none is installed
#   browser_open PAGE [ARGUMENT...]   a browser of its own at file://PAGE, 1200 x 900 pixels, loaded when this returns
#   evaluate EXPRESSION     prints the value of a JavaScript expression: a text as it is, others as JSON; a promise is waited for
#   mouse TYPE X Y          mouseMoved, mousePressed or mouseReleased (the left button) there
#   browser_told            what it told since it was opened and is not as it should be: errors, console messages, and requests
#                           other than that for the page
#   browser_close
# shellcheck disable=SC2154 # $scratch is tap.sh's
browser_find() {
    chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || return 1
}
browser_close() {
    [ -n "${browser_pid:-}" ] || return 0
    exec {browser_in}>&- {browser_out}<&-
    kill "$browser_pid" 2>/dev/null
    wait "$browser_pid" 2>/dev/null
    browser_pid=
    return 0
}
# Sends METHOD with PARAMETERS, and waits for its answer, which is then in $answer; what else comes is kept.
ask() { # ask METHOD [PARAMETERS]
    local message
    printf '{"id":%d,%s"method":"%s","params":%s}\0' $((++asked)) "${session:+\"sessionId\":\"$session\",}" "$1" "${2:-{\}}" >&"$browser_in"
    while IFS= read -rt 120 -d '' message <&"$browser_out"; do
        case $message in
        "{\"id\":$asked,"*) answer=$message; return ;;
        *) printf '%s\n' "$message" >>"$scratch/browser-told" ;;
        esac
    done
    echo "the browser did not answer to $1; it said:" >&2; tail -n 5 "$scratch/browser-log" >&2
    return 1
}
member() { sed -nE "s/.*\"$1\":\"([^\"]*)\".*/\1/p" <<<"$answer"; }
browser_open() {
    local page=$1 target; shift
    browser_close
    rm -f "$scratch/browser-in" "$scratch/browser-out" "$scratch/browser-told"
    mkfifo "$scratch/browser-in" "$scratch/browser-out"
    : >"$scratch/browser-told"
    "$chromium" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
        --user-data-dir="$scratch/browser-profile" --window-size=1200,900 "$@" --remote-debugging-pipe about:blank \
        3<"$scratch/browser-in" 4>"$scratch/browser-out" >"$scratch/browser-log" 2>&1 &
    browser_pid=$!
    exec {browser_in}>"$scratch/browser-in" {browser_out}<"$scratch/browser-out"
    asked=0 session=
    ask Target.createTarget '{"url":"about:blank"}' || return
    target=$(member targetId)
    ask Target.attachToTarget "{\"targetId\":\"$target\",\"flatten\":true}" || return
    session=$(member sessionId)
    ask Runtime.enable && ask Log.enable && ask Network.enable && ask Page.enable && ask Page.navigate "{\"url\":\"file://$page\"}" || return
    evaluate 'new Promise(done => document.readyState === "complete" ? done("") : addEventListener("load", () => done("")))' >"$scratch/.load"
}
evaluate() {
    local expression=${1//\\/\\\\}
    expression=${expression//\"/\\\"}
    ask Runtime.evaluate "{\"expression\":\"${expression//$'\n'/ }\",\"awaitPromise\":true,\"returnByValue\":true}" || return
    case $answer in
    *'"exceptionDetails"'*) echo "exception: $answer"; return 1 ;;
    *'"type":"string","value":"'*) sed -E 's/.*"type":"string","value":"(.*)"\}\},"sessionId.*/\1/; s/\\n/\n/g; s/\\"/"/g; s/\\\\/\\/g' <<<"$answer" ;;
    *) sed -E 's/.*"value":(.*)\}\},"sessionId.*|.*("undefined").*/\1\2/; s/,"description":"[^"]*"$//' <<<"$answer" ;;
    esac
}
mouse() {
    local pressed=0
    [ "$1" = mouseMoved ] && [ -z "${dragging:-}" ] || pressed=1
    ask Input.dispatchMouseEvent "{\"type\":\"$1\",\"x\":$2,\"y\":$3,\"button\":\"$([ $pressed = 1 ] && echo left || echo none)\",\"buttons\":$pressed,\"clickCount\":$pressed}"
}
browser_told() {
    grep -E '"method":"(Runtime.(exceptionThrown|consoleAPICalled)|Log.entryAdded|Network.(requestWillBeSent|webSocketCreated|loadingFailed))"' "$scratch/browser-told" |
        grep -vE '"requestWillBeSent".*"documentURL":"(file://[^"]*)".*"url":"\1"' | grep -vE '"Network.requestWillBeSent".*"type":"Document"' | cut -c 1-500
}
