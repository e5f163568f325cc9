package explore

import (
	"reflect"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
)

// TestKeys changes each field of a component, however deep, and expects another key.
func TestKeys(t *testing.T) {
	held := []faults.HeldView{{Client: "A"}}
	for name, component := range map[string]keyed{
		"common": &common{now: time.Second},
		"node":   &node{{Name: "n1/0", Talks: []string{"A"}}},
		"client": &client{ClientView: harness.ClientView{Name: "A"}, held: held, unread: held},
	} {
		count := 0
		var visit func(path string, v reflect.Value)
		visit = func(path string, v reflect.Value) {
			switch v.Kind() {
			case reflect.Pointer:
				visit(path, v.Elem())
				return
			case reflect.Struct:
				for i := range v.NumField() {
					visit(path+"."+v.Type().Field(i).Name, v.Field(i))
				}
				return
			case reflect.Slice:
				for i := range v.Len() {
					visit(path+"[]", v.Index(i))
				}
				return
			}
			count++
			// A field without a capital letter is reached by its address.
			v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
			before := stateKeyOf(component)
			was := reflect.New(v.Type()).Elem()
			was.Set(v)
			switch v.Kind() {
			case reflect.Bool:
				v.SetBool(!v.Bool())
			case reflect.Int, reflect.Int64:
				v.SetInt(v.Int() + 1)
			case reflect.String:
				v.SetString(v.String() + "x")
			default:
				t.Fatalf("%s is a %s: teach this test to change one", path, v.Kind())
			}
			if stateKeyOf(component) == before {
				t.Errorf("%s is not in the key: add it to appendKey, or take it out of the snapshot", path)
			}
			v.Set(was)
		}
		visit(name, reflect.ValueOf(component))
		if count < 3 {
			t.Errorf("%s: only %d fields were changed", name, count)
		}
	}
}

func stateKeyOf(component keyed) string {
	var k stateKey
	component.appendKey(&k)
	return string(k)
}

// TestKeysDiffer checks that values next to each other don't run into one another.
func TestKeysDiffer(t *testing.T) {
	a, b := node{{Name: "n1", Data: "x"}}, node{{Name: "n1x"}}
	if stateKeyOf(a) == stateKeyOf(b) {
		t.Error("two nodes have one key")
	}
}
