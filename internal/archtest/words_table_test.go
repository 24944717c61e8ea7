package archtest

// retiredNames are words of names, joined by _.
var retiredNames = []retired{
	{"outpost", "notifyConn", ""},
	{"herald", "sdNotifier", ""},
	{"presence", "Endpoint", ""},
	{"crier", "endpointPublisher", ""},
	{"estate", "handoff", ""},
	{"hasten", "fastexec", ""},
	{"foresight", "preflight", ""},
	{"foresee", "preflight", ""},
	{"mourn", "reap, respawn", ""},
	{"bury", "reap", ""},
	{"employ", "startControllers", ""},
	{"employer", "unitController", ""},
	{"audience", "broadcaster", ""},
	{"seat", "subscriber", ""},
	{"narrate", "progress", ""},
	{"narrator", "progress", ""},
	{"wishes", "options", ""},
	{"trial", "tryPod", ""},
	{"mend", "repair", ""},
	{"direction", "pump, client", ""},
	{"bring", "fetch", ""},
	{"crowd", "many", ""},
	{"workwords", "workloadargs", ""},
	{"glance", "podrow", ""},
	{"examine", "diagnose", ""},
	{"vacate", "removeOld", ""},
	{"make_way", "removeOld", ""},
	{"suit", "adaptToHost", ""},
	{"adder", "addTx", ""},
	{"blobat", "rangeReader", ""},
	{"nap", "shortWait, hibernate", ""},
	{"joint", "proxyConn", ""},
	{"joints", "conns", ""},
	{"tock", "tick", ""},
	{"meet", "accept, proxyPending", ""},
	{"talk", "session", ""},
	{"uplink", "masquerade", ""},
	{"stackproc", "stackclient", ""},
	{"dull", "(say what it is)", ""},
	{"rise", "recover", ""},
	{"revive", "recover", ""},
	{"recall", "resume", ""},
	{"take_up", "recover", ""},
	{"whole_front", "CLI", ""},
	{"quick_front", "fastPath", ""},
	{"fronts", "fastPath", ""},
	{"pasta", "(the mode is gone)", "^test/netbench/"},
	{"rooms", "packages, deps", ""},
	{"law", "layout", ""},
	{"trampoline", "execshim", ""},
}

// retiredFiles are regular expressions of paths.
var retiredFiles = []retired{
	{`(^|/)(herald|crier|estate|outpost|foresight|presence|narrator|trial|keeper|settle|unheeded|employ|employdoze|mourn|narrate|narratemounts|poke|wishes|workwords|lives|stillwaits|past|turn|doze|rise|revive|takeup|tell|told|say|said|ahead|joint|meet|talk|wires|spin|stays|uplink|law|habits|house|rooms|trampoline)(_test)?\.(go|c|h)$`, "the standard term (retiredNames has most of them)", ""},
	{"^internal/(brief|page|properties|testwords|trial)/", "rawsys, webui, proptest, scriptcmd, preflight", ""},
	{"^netns/(names|uplink|stackproc)/", "dns, masquerade, netstack/stackclient", ""},
}

// retiredText are regular expressions of comments, strings and documents.
var retiredText = []retired{
	{`[Tt]rampoline`, "exec shim", ""},
	{`\bmourn(s|ed)?\b|\b[Bb]ur(y|ies|ied)\b|\b[Ee]mployers?\b`, "reap, log and respawn; startControllers", ""},
}
