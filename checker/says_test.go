package checker

import (
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                             "0.000s",
		time.Millisecond:              "0.001s",
		1499 * time.Microsecond:       "0.001s",
		1500 * time.Microsecond:       "0.002s",
		33002 * time.Millisecond:      "33.002s",
		time.Hour:                     "3600.000s",
		-1500 * time.Millisecond:      "-1.500s",
		59*time.Second + 999999999*1:  "60.000s",
		-time.Duration(1):             "0.000s",
		time.Duration(-1 << 63):       "-9223372036.854s",
		time.Duration(1<<63 - 1):      "9223372036.854s",
		2*time.Minute + 3*time.Second: "123.000s",
	} {
		if got := seconds(d).String(); got != want {
			t.Errorf("%d ns: got %s, want %s", d, got, want)
		}
	}
}
