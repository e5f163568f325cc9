// Package schematest has tests see that results.json is what its published schema says.
package schematest

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Results returns in which ways the text of a results.json is not what docs/results.schema.json
// says. Keys that the schema doesn't know are errors here: readers are told to pass over them, but
// those that we write must be in it. It reads the schema where this module's source is.
func Results(text []byte) error {
	_, here, _, _ := runtime.Caller(0)
	published, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "docs", "results.schema.json"))
	if err != nil {
		return err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(published))
	if err != nil {
		return err
	}
	closed(schema)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("results", schema); err != nil {
		return err
	}
	compiled, err := c.Compile("results")
	if err != nil {
		return err
	}
	results, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return compiled.Validate(results)
}

// closed has each object of a schema that names its keys take no others.
func closed(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, named := s["properties"]; named && s["type"] == "object" {
			s["additionalProperties"] = false
		}
		for _, part := range s {
			closed(part)
		}
	case []any:
		for _, part := range s {
			closed(part)
		}
	}
}
