package completion

import (
	"fmt"
	"strings"
)

// Shells are those that there is a script for.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Script returns what a shell is to read. It works with the program of the command line
// itself, wherever that is.
func Script(shell string) (string, error) {
	switch shell {
	case "bash":
		return bash, nil
	case "zsh":
		return zsh, nil
	case "fish":
		return fish, nil
	}
	return "", fmt.Errorf("no completion for %q; there is: %s", shell, strings.Join(Shells(), ", "))
}

// bash breaks words at "=" and leaves "~" as it was typed. compopt is not in the bash 3 of
// macOS, where a folder is completed without its slash then.
const bash = `# Completion of notebox for bash: source <(notebox completion bash)
_notebox() {
    local line kind= current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME}
    COMPREPLY=()
    if [[ $current == "=" ]]; then current=; fi
    while IFS= read -r line; do
        if [[ -z $kind ]]; then
            kind=$line
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <("$program" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case $kind in
    file | folder)
        compopt -o filenames 2>/dev/null
        local flag=-f
        if [[ $kind == folder ]]; then flag=-d; fi
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$flag" -- "$current")
        ;;
    words)
        # What stands before "=" is a word of its own here.
        local i
        if [[ ${COMP_WORDS[COMP_CWORD]} == "=" || ${COMP_WORDS[COMP_CWORD - 1]} == "=" ]]; then
            for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#*=}; done
        fi
        ;;
    esac
}
complete -F _notebox notebox
`

const zsh = `#compdef notebox
# Completion of notebox for zsh: source <(notebox completion zsh), or this file as _notebox
# in a folder of $fpath.
_notebox() {
    local -a lines items
    local line kind
    lines=("${(@f)$(${(e)~words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    kind=${lines[1]}
    case $kind in
    file)
        compset -P '-*='
        _files
        ;;
    folder)
        compset -P '-*='
        _files -/
        ;;
    words)
        for line in "${(@)lines[2,-1]}"; do
            items+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
        done
        _describe -V notebox items
        ;;
    esac
}
if [ "${funcstack[1]}" = _notebox ]; then
    _notebox
else
    compdef _notebox notebox
fi
`

const fish = `# Completion of notebox for fish: notebox completion fish | source
function __notebox_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] complete -- $words[2..-1] $current 2>/dev/null)
    switch "$lines[1]"
        case file
            __fish_complete_path (string replace -r -- '^-[^=]*=' '' $current)
        case folder
            __fish_complete_directories (string replace -r -- '^-[^=]*=' '' $current)
        case words
            printf '%s\n' $lines[2..-1]
    end
end
complete -c notebox -f -a '(__notebox_complete)'
`
