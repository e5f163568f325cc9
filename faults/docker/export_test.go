package docker

// Run is the value of the label of all that the host makes.
func (h *Host) Run() string { return h.run }

// Insist is what pauses and resumes containers.
var Insist = insist
