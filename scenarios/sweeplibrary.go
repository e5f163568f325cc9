package scenarios

import (
	"embed"
	"strings"
)

//go:embed maps/*.txt
var mapScripts embed.FS

// MapNames returns the names of the program's scripts with parameters, which are for maps.
func MapNames() []string {
	return strings.Fields("pause-lease drift-lease lag-crash roundtrip-lease renewal-outage")
}

// MapSource returns the file name and the text of the map script with the given name, or empty
// results.
func MapSource(name string) (file string, src []byte) {
	file = name + ".txt"
	src, err := mapScripts.ReadFile("maps/" + file)
	if err != nil {
		return "", nil
	}
	return file, src
}
