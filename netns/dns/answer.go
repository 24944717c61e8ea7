package dns

import (
	"net/netip"

	"golang.org/x/net/dns/dnsmessage"
)

// resolve answers a query from the View. authoritative is false if another resolver has to be queried; then
// alias, unless it is "", is the name to query, and the answer begins with the records given.
func (v *View) resolve(q *query, turn int) (a answer, alias string, authoritative bool) {
	f, authoritative := v.lookup(q.name)
	if !authoritative {
		return answer{}, "", false
	}
	if q.question.Class != dnsmessage.ClassINET && q.question.Class != dnsmessage.ClassANY {
		return answer{code: dnsmessage.RCodeRefused}, "", true
	}
	a.authoritative, a.domain = true, v.domain()
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
	if f.alias != "" { // the names alias each other
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

// maxAliases limits a chain of ExternalNames.
const maxAliases = 8

// owner returns the name of the next record of an answer.
func owner(q *query, records []dnsmessage.Resource) dnsmessage.Name {
	if n := len(records); n > 0 {
		return records[n-1].Body.(*dnsmessage.CNAMEResource).CNAME
	}
	return q.question.Name
}

// resources returns the records of the requested type. Several addresses rotate, so that each is
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
	if kind == dnsmessage.TypeSOA && (q.name == v.domain() || q.name == internal) {
		list = append(list, authority(q.name, v.domain()))
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

// additional returns the addresses of servers, which the client would query next.
func (v *View) additional(f *records) (list []dnsmessage.Resource) {
	names := map[string]bool{}
	for _, s := range f.srv {
		name, err := dnsmessage.NewName(s.name + ".")
		if err != nil || names[s.name] {
			continue
		}
		names[s.name] = true
		var addresses []netip.Addr
		if of, _ := v.lookup(s.name); of != nil {
			addresses = of.addresses
		}
		list = append(list, addressRecords(name, dnsmessage.TypeA, addresses)...)
		list = append(list, addressRecords(name, dnsmessage.TypeAAAA, addresses)...)
	}
	return list
}
