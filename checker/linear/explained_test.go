package linear

import "testing"

// What explains is what is left when all is left out that can't make a legal history illegal: a release stays if what it ended does.
func TestExplanations(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    naiveSpec
		strict  bool
		history string
		want    string
	}{
		{"pairs and failures go", naiveSpec{}, false,
			"0 A acquire; 1 A acquire ok; 2 A release; 3 A release ok; 4 B try; 5 B try fail; 6 A acquire; 7 A acquire ok; 8 B acquire; 9 B acquire ok; 10 A release",
			"6 A acquire; 7 A acquire ok; 8 B acquire; 9 B acquire ok"},
		{"who was told busy needs nobody", naiveSpec{}, true,
			"0 A acquire; 1 A acquire ok; 2 A release; 3 A release ok; 4 B try; 5 B try fail", "4 B try; 5 B try fail"},
		{"who was told of a hold does not explain another", naiveSpec{}, true,
			"0 A acquire; 1 A acquire ok; 2 B try; 3 B try fail; 4 C acquire; 5 C acquire ok", "0 A acquire; 1 A acquire ok; 4 C acquire; 5 C acquire ok"},
		{"a failed release says that the hold lasts, and is no part of it", naiveSpec{}, false,
			"0 A acquire; 1 A acquire ok; 2 A release; 3 B acquire; 4 B acquire ok; 5 A release fail",
			"0 A acquire; 1 A acquire ok; 3 B acquire; 4 B acquire ok"},
		{"an unknown acquire that explains a release stays with it", naiveSpec{}, false,
			"0 A acquire; 1 A acquire unknown; 2 B acquire; 3 B acquire ok; 4 A release; 5 A release ok",
			"0 A acquire; 1 A acquire unknown; 2 B acquire; 3 B acquire ok; 4 A release; 5 A release ok"},
		{"an unknown acquire that is released does not explain a second", naiveSpec{}, false,
			"0 A acquire; 1 A acquire unknown; 2 A release; 3 A release ok; 4 A release; 5 A release ok", "4 A release; 5 A release ok"},
		{"a token that an acquire gave stays while it is used", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 A acquire ok token=4; 2 A release; 3 A release ok; 4 B acquire; 5 B acquire ok token=5; 6 B use ok token=5; 7 A use ok token=4",
			"0 A acquire; 1 A acquire ok token=4; 2 A release; 3 A release ok; 4 B acquire; 5 B acquire ok token=5; 6 B use ok token=5; 7 A use ok token=4"},
		{"what came behind goes when what was proven late goes", naiveSpec{}, false,
			"0 A acquire; 1 A acquire ok; 2 A release; 3 B acquire; 4 B acquire ok; 5 B release; 6 A release fail",
			"0 A acquire; 1 A acquire ok; 3 B acquire; 4 B acquire ok"},
		{"keys in another order are the same", naiveSpec{kind: naiveMulti}, false,
			"0 A acquire key=x+y; 1 A acquire ok key=x+y; 2 A release key=y+x; 3 A release ok key=y+x; 4 B acquire key=z; 5 B acquire ok key=z; " +
				"6 A acquire key=z; 7 A acquire ok key=z",
			"4 B acquire key=z; 5 B acquire ok key=z; 6 A acquire key=z; 7 A acquire ok key=z"},
		{"and so they are of who was told busy", naiveSpec{kind: naiveMulti}, true,
			"0 A acquire key=x+y; 1 A acquire ok key=x+y; 2 A release key=y+x; 3 B try key=x; 4 B try fail key=x; 5 A release ok key=y+x; " +
				"6 B release key=x; 7 B release ok key=x",
			"6 B release key=x; 7 B release ok key=x"},
		{"several permits", naiveSpec{kind: naiveSemaphore, limit: 2}, false,
			"0 A acquire; 1 A acquire ok; 2 B acquire; 3 B acquire ok; 4 B release; 5 B release ok; 6 C acquire n=2; 7 C acquire ok n=2",
			"0 A acquire; 1 A acquire ok; 6 C acquire n=2; 7 C acquire ok n=2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := parse(t, c.history)
			e, ok := Explain(specOf(c.spec), events, Options{Strict: c.strict})
			if got := notation(e.Events); !ok || got != c.want {
				t.Errorf("explained: %v, by\n\t%s, want\n\t%s", ok, got, c.want)
			}
		})
	}
}
