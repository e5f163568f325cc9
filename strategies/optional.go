package strategies

import "reflect"

// Partial is a Lock whose type has methods of optional interfaces that this lock may lack, as an
// adapter for locks of different abilities has.
type Partial interface {
	// Supports reports whether the lock supports the method of that name.
	Supports(method string) bool
}

// As returns the lock as a T, which is one of the optional interfaces with a single method, such as
// [Extender]. ok is false if the lock lacks the method, or is a [Partial] that does not support it.
func As[T any](l Lock) (t T, ok bool) {
	if t, ok = l.(T); !ok {
		return t, false
	}
	if p, partial := l.(Partial); partial && !p.Supports(reflect.TypeFor[T]().Method(0).Name) {
		var none T
		return none, false
	}
	return t, true
}
