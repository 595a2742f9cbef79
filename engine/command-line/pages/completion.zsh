_assay() {
    local commands actions options operand verb='' has_operand='' i
    _assay_words ''
    for ((i = 2; i < CURRENT; i++)); do
        [[ $words[i] == -* || " $options " == *" $words[i-1]= "* ]] && continue
        [[ -n $verb ]] && has_operand=1
        verb=${verb:-$words[i]}
        _assay_words "$verb"
    done
    if [[ " $options " == *" $words[CURRENT-1]= "* ]]; then
        _files # the argument of an option
    elif [[ $words[CURRENT] == -* ]]; then
        compadd -- ${=options//=/}
    elif [[ -z $verb || $operand == command ]]; then
        compadd -- ${=commands} ${=actions}
    elif [[ -z $has_operand && -n $actions ]]; then
        compadd -- ${=actions}
        [[ $operand == action ]] || _files
    elif [[ $operand == run ]]; then
        compadd -f -- runs/*(N/)
        _files -/
    else
        _files
    fi
}
if [[ $funcstack[1] == _assay ]]; then _assay "$@"; else compdef _assay assay; fi
