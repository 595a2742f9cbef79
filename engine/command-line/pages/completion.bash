# Sets COMPREPLY; where it stays empty, readline completes file names.
_assay() {
    local commands actions options operand word=${COMP_WORDS[COMP_CWORD]} verb='' has_operand='' i
    COMPREPLY=()
    _assay_words ''
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -* || " $options " == *" ${COMP_WORDS[i - 1]}= "* ]] && continue
        [[ $verb ]] && has_operand=1
        verb=${verb:-${COMP_WORDS[i]}}
        _assay_words "$verb"
    done
    if [[ " $options " == *" ${COMP_WORDS[COMP_CWORD - 1]}= "* || ${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then
        return # the argument of an option
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${options//=/}" -- "$word")
    elif [[ ! $verb || $operand == command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands $actions" -- "$word")
    elif [[ ! $has_operand && $actions ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$actions" -- "$word"; [[ $operand == action ]] || compgen -f -- "$word")
    elif [[ $operand == run ]]; then
        mapfile -t COMPREPLY < <(compgen -d -- "${word:-runs/}")
    fi
}
complete -o bashdefault -o default -F _assay assay
