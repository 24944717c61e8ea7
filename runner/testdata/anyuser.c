// anyuser listens on port 80, and pings 127.0.0.1 through a socket that needs no capability.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(80)};
	struct icmphdr request = {.type = ICMP_ECHO}, answer = {0};
	int l = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);

	if (l < 0 || bind(l, (struct sockaddr *)&own, sizeof own) < 0 || listen(l, 1) < 0) {
		printf("listen on port 80: %s\n", strerror(errno));
		return 1;
	}
	if (s < 0 || sendto(s, &request, sizeof request, 0, (struct sockaddr *)&to, sizeof to) < 0 ||
	    recv(s, &answer, sizeof answer, 0) < 0 || answer.type != ICMP_ECHOREPLY) {
		printf("ping: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}
