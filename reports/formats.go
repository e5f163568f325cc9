package reports

// Forms returns the supported formats of a whole report. A format is a file of this package with its
// entry; this list is the only place that names all of them.
func Forms() []Format {
	return []Format{formatHTML, formatMarkdown, formatJSON, formatJUnit, formatCSV, formatMermaid, formatAnnotations}
}
