// Search in the pages of the site, without a service: search-index.js has the sections of all pages. It is loaded when
// the field is first used. It calls podrunIndex, because a page from a file may not fetch other files.
(() => {
	const script = document.currentScript, root = script.dataset.root;
	const field = document.querySelector("#search input"), list = document.querySelector("#search ul");
	let sections = null;

	// words are in the order of the query, in small letters.
	const words = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);

	// score is 0 unless the section has every word; a word in a heading counts more than one in the text.
	const score = (section, wanted) => {
		let sum = 0;
		for (const word of wanted) {
			const found = (section.h.toLowerCase().includes(word) ? 8 : 0) + (section.t.toLowerCase().includes(word) ? 5 : 0) +
				Math.min(3, section.low.split(word).length - 1);
			if (!found) return 0;
			sum += found;
		}
		return sum;
	};

	const show = () => {
		const wanted = words(field.value);
		list.replaceChildren();
		if (!sections || !wanted.length) return;
		const found = sections.map((s) => [score(s, wanted), s]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).slice(0, 12);
		for (const [, s] of found) {
			const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("small");
			link.href = root + s.u;
			link.textContent = s.h === s.t ? s.t : s.t + ": " + s.h;
			const at = Math.max(0, s.low.indexOf(wanted[0]) - 40);
			text.textContent = s.x.slice(at, at + 120);
			item.append(link, text);
			list.append(item);
		}
		if (!found.length) {
			const item = document.createElement("li");
			item.textContent = "Nothing has all of these words.";
			list.append(item);
		}
	};

	const load = () => {
		if (window.podrunIndex) return show();
		window.podrunIndex = (all) => {
			sections = all;
			for (const s of sections) s.low = s.x.toLowerCase();
			show();
		};
		const index = document.createElement("script");
		index.src = root + "search-index.js";
		document.head.append(index);
	};
	field.addEventListener("focus", load);
	field.addEventListener("input", load);
	field.value = new URLSearchParams(location.search).get("q") || "";
	if (field.value) load();
})();
