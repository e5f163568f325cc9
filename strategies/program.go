package strategies

import "errors"

// Program describes a user's program, in any language, that runs as one client's process in place
// of a strategy's New. Only worlds with real servers can run a Program, because it sleeps and reads
// the time with the functions of its own language.
type Program struct {
	// Words holds the command: the program, which is looked up in PATH, and its arguments. No shell
	// interprets Words.
	Words []string
	// Full selects the protocol of docs/client-protocol.md instead of the simple protocol of
	// docs/subject.md.
	Full bool
}

// errNoProgram reports that a program's command is empty.
var errNoProgram = errors.New("it names no program: the first of its Words is the program")

func (p *Program) check() error {
	if len(p.Words) == 0 || p.Words[0] == "" {
		return errNoProgram
	}
	return nil
}
