package rediscli

import (
	"maps"
	"testing"
)

func TestParseInfo(t *testing.T) {
	text := "# Server\r\nredis_version:7.0.15\r\nexecutable:/usr/bin/a:b\r\n\r\n# Keyspace: now\r\ndb0:keys=1,expires=0\r\nempty:\r\nno field\r\n"
	want := map[string]string{"redis_version": "7.0.15", "executable": "/usr/bin/a:b", "db0": "keys=1,expires=0", "empty": ""}
	if got := ParseInfo(text); !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := ParseInfo(""); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}
