package dns

import (
	"net/netip"

	"golang.org/x/net/dns/dnsmessage"
)

// resolve answers from what is known. ours is false where somebody else is to be asked,
// and then alias, if it is not "", is what is to be asked for: the answer begins with
// the records given.
func (v *View) resolve(q *query, turn int) (a answer, alias string, ours bool) {
	f, ours := v.lookup(q.name)
	if !ours {
		return answer{}, "", false
	}
	if q.question.Class != dnsmessage.ClassINET && q.question.Class != dnsmessage.ClassANY {
		return answer{code: dnsmessage.RCodeRefused}, "", true
	}
	a.authoritative = true
	if f == nil {
		a.code, a.noData = dnsmessage.RCodeNameError, true
		return a, "", true
	}
	for range maxAliases {
		if f.alias == "" {
			break
		}
		target, err := dnsmessage.NewName(f.alias + ".")
		if err != nil {
			return answer{code: dnsmessage.RCodeServerFailure}, "", true
		}
		a.records = append(a.records, dnsmessage.Resource{Header: header(owner(q, a.records), dnsmessage.TypeCNAME), Body: &dnsmessage.CNAMEResource{CNAME: target}})
		if q.question.Type == dnsmessage.TypeCNAME {
			return a, "", true
		}
		next, known := v.lookup(f.alias)
		if !known {
			return a, f.alias, false
		}
		if next == nil {
			a.code, a.noData = dnsmessage.RCodeNameError, true
			return a, "", true
		}
		f = next
	}
	if f.alias != "" { // they stand for each other
		return answer{code: dnsmessage.RCodeServerFailure}, "", true
	}
	records := v.resources(q, owner(q, a.records), f, turn)
	a.records = append(a.records, records...)
	a.noData = len(records) == 0
	if q.question.Type == dnsmessage.TypeSRV {
		a.additional = v.additional(f)
	}
	return a, "", true
}

// maxAliases bounds a chain of ExternalNames.
const maxAliases = 8

// owner is the name that the next record of an answer is of.
func owner(q *query, records []dnsmessage.Resource) dnsmessage.Name {
	if n := len(records); n > 0 {
		return records[n-1].Body.(*dnsmessage.CNAMEResource).CNAME
	}
	return q.question.Name
}

// resources are those of the type that is asked for. Of several addresses each is the
// first in turn.
func (v *View) resources(q *query, name dnsmessage.Name, f *records, turn int) []dnsmessage.Resource {
	kind := q.question.Type
	var list []dnsmessage.Resource
	if kind == dnsmessage.TypeA || kind == dnsmessage.TypeALL {
		list = append(list, rotate(addressRecords(name, dnsmessage.TypeA, f.addresses), turn)...)
	}
	if kind == dnsmessage.TypeAAAA || kind == dnsmessage.TypeALL {
		list = append(list, rotate(addressRecords(name, dnsmessage.TypeAAAA, f.addresses), turn)...)
	}
	if kind == dnsmessage.TypeSRV || kind == dnsmessage.TypeALL {
		for _, s := range f.srv {
			if target, err := dnsmessage.NewName(s.name + "."); err == nil {
				list = append(list, dnsmessage.Resource{Header: header(name, dnsmessage.TypeSRV),
					Body: &dnsmessage.SRVResource{Weight: uint16(100 / len(f.srv)), Port: s.port, Target: target}})
			}
		}
	}
	if kind == dnsmessage.TypePTR || kind == dnsmessage.TypeALL {
		for _, n := range f.ptr {
			if target, err := dnsmessage.NewName(n + "."); err == nil {
				list = append(list, dnsmessage.Resource{Header: header(name, dnsmessage.TypePTR), Body: &dnsmessage.PTRResource{PTR: target}})
			}
		}
	}
	if kind == dnsmessage.TypeSOA && (q.name == cluster || q.name == internal) {
		list = append(list, authority(q.name))
	}
	return list
}

func rotate(list []dnsmessage.Resource, turn int) []dnsmessage.Resource {
	if len(list) == 0 {
		return nil
	}
	n := turn % len(list)
	return append(list[n:len(list):len(list)], list[:n]...)
}

// additional are the addresses of servers, which would be asked for next.
func (v *View) additional(f *records) (list []dnsmessage.Resource) {
	seen := map[string]bool{}
	for _, s := range f.srv {
		name, err := dnsmessage.NewName(s.name + ".")
		if err != nil || seen[s.name] {
			continue
		}
		seen[s.name] = true
		var addresses []netip.Addr
		if of, _ := v.lookup(s.name); of != nil {
			addresses = of.addresses
		}
		list = append(list, addressRecords(name, dnsmessage.TypeA, addresses)...)
		list = append(list, addressRecords(name, dnsmessage.TypeAAAA, addresses)...)
	}
	return list
}
