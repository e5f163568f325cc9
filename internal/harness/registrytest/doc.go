// Package everylock has no code: its tests play every strategy that comes with this
// module, other people's libraries too. They are not in package harness, whose tests are
// among what a module depends on that imports it.
package registrytest
