// Command redis-image builds a local image out of the redis-server of this
// machine, or of the program that is its argument, for the world docker where
// no registry can be reached. Where no engine answers, the exit status is 3.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lockfault/lockfault/faults/docker"
)

func main() {
	var program string
	if len(os.Args) > 1 {
		program = os.Args[1]
	}
	if err := docker.BuildImage(context.Background(), program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		var none *docker.EngineError
		if errors.As(err, &none) {
			os.Exit(3)
		}
		os.Exit(1)
	}
	fmt.Println(docker.LocalImage)
}
