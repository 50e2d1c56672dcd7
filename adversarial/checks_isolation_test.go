package adversarial

var isolationChecks = map[string]Check{}
