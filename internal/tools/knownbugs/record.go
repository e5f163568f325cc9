package main

// A record is a known defect of a library, and the scenario that shows it.
type record struct {
	name    string // the script's, without its .txt
	library library
	lease   string // for real time, where the world's own is too short for what the script tells apart
	defect  string
	sources []source
	shows   string // the strategy that shows it
	cures   []cure
	note    string       // what a reader must know to judge it fairly
	result  *shownResult // what the script is about, where it is an answer and no anomaly
}

// A source is where a defect is reported, or where the code is that has it.
type source struct{ text, url string }

// A cure is what a user can do, and the strategy that does it.
type cure struct{ what, strategy string }

// A shownResult is an operation of a client whose result is to be shown.
type shownResult struct{ client, op string }

// A library is what people call it, and the module that it is in.
type library struct{ name, module string }

// on returns an issue or pull request of a repository.
func on(repository, kind, number string) source {
	return source{"#" + number, "https://github.com/" + repository + "/" + kind + "/" + number}
}
