package adversarial

var requestChecks = map[string]Check{}
