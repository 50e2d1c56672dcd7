package adversarial

var outputChecks = map[string]Check{}
