package schematest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
)

const some = `{"tool":"lockfault","version":"v1","world":"sim","seed":1,"cells":[
{"world":"sim","strategy":"s","scenario":"c","verdict":"violated","anomalies":["overlap"],"expected":[],"as_expected":false,
"linearizable":true,"witnesses":[{"anomaly":"overlap","events":[1,2],"says":"so"}],"virtual_ns":1,"elapsed_ns":1,"round_trips":{"acquire":1}}]}`

func TestSchemaRefuses(t *testing.T) {
	if err := Results([]byte(some)); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range [][2]string{
		{`"tool":"lockfault"`, `"tool":"another"`},
		{`"seed":1,`, ``},
		{`"seed":1`, `"seed":-1`},
		{`"seed":1`, `"seed":1,"unheard":1`},
		{`"violated"`, `"held"`},
		{`"violated"`, `"error"`},
		{`["overlap"]`, `[]`},
		{`["overlap"]`, `["overlaps"]`},
		{`["overlap"]`, `["overlap","overlap"]`},
		{`"expected":[]`, `"expected":null`},
		{`"says":"so"`, `"says":"so","why":""`},
		{`"acquire":1`, `"acquire":"1"`},
	} {
		text := strings.Replace(some, wrong[0], wrong[1], 1)
		if text == some {
			t.Fatalf("there is no %s", wrong[0])
		}
		if Results([]byte(text)) == nil {
			t.Errorf("%s in place of %s is taken", wrong[1], wrong[0])
		}
	}
}

// The schema has every anomaly, and no other.
func TestSchemaHasAllAnomalies(t *testing.T) {
	list, err := json.Marshal(checker.Anomalies())
	if err != nil {
		t.Fatal(err)
	}
	if err := Results(fmt.Appendf(nil, "%s", strings.Replace(some, `["overlap"]`, string(list), 1))); err != nil {
		t.Error(err)
	}
}
