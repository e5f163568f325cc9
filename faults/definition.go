package faults

// Definition describes one kind of fault: its place in the script language, its texts for users, and
// the properties by which other packages treat it. Each fault's file has its Definition, and
// [Definitions] lists all. Package topology decides what a fault does, and the worlds do it.
type Definition struct {
	// Name is unique: the word, prefixed with its target if several faults share the word.
	Name string
	// Word is the fault's word in a script: the verb after the names of its targets, or the first
	// word of the line.
	Word string
	// Target is the object of the fault. Target decides where the names stand in a line.
	Target Target
	// Example is a whole line of a script. Summary states in one line what the example does.
	Example, Summary string
	// Synonyms are words that users may write instead of Word. The parser suggests Word for them.
	Synonyms []string
	// Requires is what the servers must have. If it depends on the fault's fields, the fault has a
	// method Requires, and [RequirementOf] returns its result.
	Requires Requirement
	// OwnKeys states that a fault of a node changes only keys of the lock. Such a fault is possible
	// on a server that others use.
	OwnKeys bool
	// Reverses lists faults by name: a script must have applied one of them to the same target
	// before. Reversed is the participle for the error message, such as "paused".
	Reverses []string
	Reversed string
	// EndsOnly states that the fault does nothing but end other faults.
	EndsOnly bool
	// Group names faults that belong together, such as a pause and its end. Shrinking a script
	// removes a group as a whole. Empty means a group with this fault only.
	Group string
	// Shown describes how pictures show the fault while it lasts. Shown is nil if the fault has no duration,
	// or if histories have events of their own for it.
	Shown *Shown
	// Nemeses are the random faults that begin with this one.
	Nemeses []Nemesis
	// Searched are the transitions with which a search for schedules injects the fault.
	Searched []Searched
	// RaceFree are the arguments with which random scripts without races use the fault of a node;
	// "" means none. Such scripts use faults without RaceFree by rules of their own, or not at all.
	RaceFree []string

	form form
}

// Target is what the lines of a fault are about.
type Target int

// The targets of faults.
const (
	OnClient     Target = iota + 1 // the processes of clients: "A B pause"
	OnNode                         // nodes: "n1 n2 flush"
	OnServer                       // nodes or single servers: "n1 n2/1 crash"
	OnLinks                        // links between clients and nodes: "latency A n1 50ms"
	BetweenNodes                   // links between nodes: "partition n1 from n2"
	OnMessages                     // messages that the gate selects: "hold A before SET"
)

// Requirement is what the servers of a world must have for a fault.
type Requirement int

// The requirements, each with the services that meet it.
const (
	NeedsNothing  Requirement = iota // every service
	NeedsRedis                       // Redis: the fault is a command of Redis, or needs its data model
	NeedsReplicas                    // services whose servers follow one another
	NeedsPeers                       // services whose nodes form a cluster
	NeedsClock                       // services whose clocks can be set
	NeedsDrift                       // services whose clocks can run at another rate
)

// Shown is how a picture shows a fault that lasts.
type Shown struct {
	Appearance Appearance
	Label      string   // empty means the words of the line
	Ends       []string // words of the faults that end it
}

// Appearance is the appearance of a fault in a picture.
type Appearance int

// The appearances of faults.
const (
	ShownStopped Appearance = iota + 1 // the target does nothing
	ShownCut                           // messages are lost
	ShownOdd                           // the target works, in an unusual way
)

// Nemesis is a random fault: it happens at random times for random durations.
type Nemesis struct {
	Name, Summary string
	// End is the rest of the line that ends the fault, after the names; empty if nothing ends it.
	End string
	// Jump states that the fault moves a clock by a random span.
	Jump bool
}

// Searched is a transition of a search that injects a fault of a node.
type Searched struct {
	Name, Summary string
	// Lines are the lines of a script, without the node's name before each.
	Lines []string
}

// PutsNamesFirst reports whether lines begin with the names of the targets.
func (t Target) PutsNamesFirst() bool { return t == OnClient || t == OnNode || t == OnServer }

// SparesOthers reports whether the fault affects only clients, links or keys of the lock, and
// neither servers nor the data of others. Only such faults are possible on unmanaged servers.
func (d Definition) SparesOthers() bool {
	return d.Target != OnNode && d.Target != OnServer || d.OwnKeys
}

// RequirementOf returns what servers must have for the fault.
func RequirementOf(f Fault) Requirement {
	if own, ok := f.(interface{ Requires() Requirement }); ok {
		return own.Requires()
	}
	return f.Definition().Requires
}

// New returns a fault of this definition. The function fill gets pointers to the fault's fields and
// sets them. New returns the error of fill.
func (d Definition) New(fill func([]Field) error) (Fault, error) { return d.form.new(fill) }

// Fields returns the fields of a fault of this definition. They point into a copy of the fault.
func (d Definition) Fields(f Fault) []Field { return d.form.fields(f) }

// form makes faults of one type, and returns the fields of one.
type form interface {
	new(fill func([]Field) error) (Fault, error)
	fields(Fault) []Field
}

// formOf is a form for faults of type F. It returns fields that point into the given fault.
type formOf[F Fault] func(*F) []Field

func (of formOf[F]) new(fill func([]Field) error) (Fault, error) {
	var f F
	err := fill(of(&f))
	return f, err
}

func (of formOf[F]) fields(f Fault) []Field {
	own, _ := f.(F)
	return of(&own)
}
