package scenarios

type layout struct{}
