// Package registrytest has no code: its tests run every strategy of this module, including the
// adapted libraries. They are not in package harness, because a package's tests count as
// dependencies of a module that imports the package.
package registrytest
