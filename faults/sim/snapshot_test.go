package sim

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// TestSwitchesOfAServerAreInTheView checks that each switch of a server is part of its view. A search
// takes states with equal views for one.
func TestSwitchesOfAServerAreInTheView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(Config{Nodes: 1, Lock: faults.SingleKeyLock("lock"), TTL: 30 * time.Second, Record: func(checker.Event) {}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		state := reflect.ValueOf(w.servers[0].Server).Elem()
		before := w.View()
		for i := range state.NumField() {
			field := state.Field(i)
			if field.Kind() != reflect.Bool || !field.CanSet() {
				continue
			}
			field.SetBool(!field.Bool())
			if after := w.View(); reflect.DeepEqual(before, after) {
				t.Errorf("the view does not show topology.Server.%s: add it in View or knows", state.Type().Field(i).Name)
			}
			field.SetBool(!field.Bool())
		}
	})
}
