package scenarios

import (
	"embed"
	"strings"
)

//go:embed maps/*.txt
var mapScripts embed.FS

// MapNames returns the names of the scripts with params that come with the program, for maps.
func MapNames() []string {
	return strings.Fields("pause-lease drift-lease lag-crash roundtrip-lease renewal-outage")
}

// MapSource returns the file's name and the text of the one of that name, or nothing.
func MapSource(name string) (file string, src []byte) {
	file = name + ".txt"
	src, err := mapScripts.ReadFile("maps/" + file)
	if err != nil {
		return "", nil
	}
	return file, src
}
