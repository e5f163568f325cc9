package main

// record is a known defect of a library and the script that shows it.
type record struct {
	name    string // of the script, without .txt
	library library
	lease   string // for real time, if the default lease of the world is too short for the script's differences
	defect  string
	sources []source
	shows   string // the strategy that shows the defect
	cures   []cure
	note    string       // context for a fair judgement
	result  *shownResult // set if the defect is a result of an operation rather than an anomaly
}

// source is a link to a report of the defect, or to the code that has it.
type source struct{ text, url string }

// cure is what a user can do against the defect, and the strategy that does it.
type cure struct{ what, strategy string }

// shownResult identifies an operation whose result is shown.
type shownResult struct{ client, op string }

// library is the common name of a library, and its module.
type library struct{ name, module string }

// on returns the link to an issue or pull request of a GitHub repository.
func on(repository, kind, number string) source {
	return source{"#" + number, "https://github.com/" + repository + "/" + kind + "/" + number}
}
