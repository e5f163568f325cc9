package linear

import (
	"fmt"
	"strings"
	"time"
)

func at(e *Event) string { return e.Client + " at " + e.Time.String() }

func on(key string) string {
	if key == "" {
		return ""
	}
	return " on " + key
}

func sayOverlap(v *Violation) string {
	did := func(e *Event) string {
		switch e.Op {
		case Release:
			return "released"
		case Extend:
			return "extended"
		}
		return "acquired"
	}
	a, b, long := &v.Events[0], &v.Events[1], v.To-v.From // for no time if nothing comes after it, or times are coarse
	if all := strings.Join(v.Clients, ", "); len(v.Clients) > 2 && long > 0 {
		return fmt.Sprintf("%s held together%s for %v, from %v on.", all, on(v.Key), long, v.From)
	} else if len(v.Clients) > 2 {
		return fmt.Sprintf("%s held together%s at %v.", all, on(v.Key), v.From)
	}
	together := ""
	if long > 0 {
		together = fmt.Sprintf(": they held together for %v", long)
	}
	return fmt.Sprintf("%s %s at %v and %s %s at %v%s, and neither can have been before the other%s.",
		a.Client, did(a), a.Time, b.Client, did(b), b.Time, on(v.Key), together)
}

func sayAgain(hold, e *Event, limit int32) string {
	return fmt.Sprintf("%s acquired%s, although it had acquired already, at %v, and one client may hold it %d times at most.",
		at(e), on(e.Key), hold.Time, limit)
}

func sayNotHeld(e *Event) string {
	what := "released"
	if e.Op == Extend {
		what = "extended"
	}
	return fmt.Sprintf("%s %s%s what it cannot have held.", at(e), what, on(e.Key))
}

func sayBusy(e *Event) string {
	return fmt.Sprintf("%s was told busy%s while nobody can have held.", at(e), on(e.Key))
}

func sayPermits(e *Event, held, n int64) string {
	return fmt.Sprintf("%s acquired%s, and then %d permits were out of %d.", at(e), on(e.Key), held, n)
}

func sayTokenOrder(first, second *Event) string {
	return fmt.Sprintf("%s got token %d%s, although %s had got %d before.",
		at(second), second.Token, on(second.Key), at(first), first.Token)
}

func sayTokenBack(first, second *Event) string {
	return fmt.Sprintf("%s wrote with token %d%s, and was accepted, although token %d had been by %v.",
		at(second), second.Token, on(second.Key), first.Token, first.Time.Round(time.Nanosecond))
}

func sayTokenNotIssued(e *Event) string {
	return fmt.Sprintf("%s wrote with token %d%s, which no acquire can have given it.", at(e), e.Token, on(e.Key))
}

func sayNoOrder(e *Event) string {
	did := map[Phase]string{Invoke: "called", ReturnOK: "was told ok", ReturnFail: "was told fail", ReturnUnknown: "was told nothing", Crash: "crashed"}[e.Phase]
	return fmt.Sprintf("%s %s%s, and no order of the operations explains that together with what was before.", at(e), did, on(e.Key))
}

// Describe returns the event as an English clause.
func (e *Event) Describe() string {
	who := fmt.Sprintf("at %v %s", e.Time, e.Client)
	what := e.Op.String()
	if e.Shared {
		what += " to read"
	}
	if e.Permits > 1 {
		what += fmt.Sprintf(" %d permits", e.Permits)
	}
	switch {
	case e.Phase == Crash:
		return who + " crashes"
	case e.Phase == Expired:
		return who + "'s lease ends by the server's clock"
	case e.Op == Use && e.Phase == ReturnOK:
		return fmt.Sprintf("%s uses token %d, which is accepted", who, e.Token)
	case e.Op == Use:
		return fmt.Sprintf("%s uses token %d, which is turned away", who, e.Token)
	case e.Phase == Invoke:
		return who + " calls " + what
	case e.Phase == ReturnFail:
		return who + " is told that its " + what + " failed"
	case e.Phase == ReturnUnknown:
		return who + " is not told how its " + what + " ended"
	}
	who += " is told ok of its " + what
	if e.Token != 0 {
		who += fmt.Sprintf(", with token %d", e.Token)
	}
	if e.Lease != 0 {
		who += fmt.Sprintf(", until %v", e.Lease)
	}
	return who
}
