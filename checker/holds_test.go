package checker

import (
	"reflect"
	"testing"
	"time"
)

func TestHolds(t *testing.T) {
	h := history(t, `
		with honour
		0s A acquire
		1ms A acquire ok token 7 until 29s
		2s A release
		3s B acquire
		4s B acquire ok until 20s
		5s B extend
		6s B extend ok until 25s
		30s A release ok
		30s C try
		31s C try ok
		32s C lost
		33s C try
		34s C try ok
		35s C crash
		36s D acquire
		37s D acquire ok
		38s A acquire
		39s A acquire ok until 39s
		40s end`)
	want := []Hold{
		{"A", 7, 1, time.Millisecond, 2, 2 * time.Second, ByRelease},
		{"B", 0, 4, 4 * time.Second, 7, 25 * time.Second, ByValidity},
		{"C", 0, 9, 31 * time.Second, 10, 32 * time.Second, ByLoss},
		{"C", 0, 12, 34 * time.Second, 13, 35 * time.Second, ByCrash},
		{"D", 0, 15, 37 * time.Second, 19, 40 * time.Second, StillOpen},
	}
	if got := Holds(h); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestHoldsOfNothing(t *testing.T) {
	if got := Holds(History{}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
