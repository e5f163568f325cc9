package jsonscan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

func TestReason(t *testing.T) {
	type Inner struct {
		Token int64 `json:"token"`
	}
	for text, want := range map[string]string{
		`{"token":"x"}`:             `"token" can't be a JSON string`,
		`{"list":[{"token":true}]}`: `"token" can't be a JSON bool`,
		`7`:                         "there is a JSON number where something else should be",
		`{"token":`:                 "it ends in the middle",
		`{"token":}`:                "it is no JSON: invalid character '}' looking for beginning of value",
		`{"token":7}`:               "<nil>",
	} {
		var v struct {
			Inner
			List []Inner `json:"list"`
		}
		if got := fmt.Sprint(jsonscan.Reason(json.NewDecoder(strings.NewReader(text)).Decode(&v))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
