package seccomp

// CompileRules lets a test leave rules out.
var CompileRules = compile
