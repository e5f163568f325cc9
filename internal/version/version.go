// Package version says which version of this module a program was built with.
package version

import "runtime/debug"

// Module is this module's path.
const Module = "github.com/lockfault/lockfault"

// Of returns the module's version as the binary was built with it, be it its own or a
// user's: "(devel)" for a build of a working copy, with the commit where it is known.
func Of() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == Module {
			return m.Version
		}
	}
	if info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
