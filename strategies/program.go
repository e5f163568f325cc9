package strategies

import "errors"

// A Program is a program of the user's, in whatever language, that is one client's
// process in place of a strategy's New. Only worlds of real servers can play it: it
// sleeps, and asks for the time, as its language does.
type Program struct {
	// Words are its command: the program, as it is found on PATH, and its arguments.
	// No shell reads them.
	Words []string
	// Full says that it speaks the protocol of docs/client-protocol.md, and not the
	// simple form of docs/subject.md.
	Full bool
}

// errNoProgram says that a program's command is empty.
var errNoProgram = errors.New("it names no program: the first of its Words is the program")

func (p *Program) check() error {
	if len(p.Words) == 0 || p.Words[0] == "" {
		return errNoProgram
	}
	return nil
}
