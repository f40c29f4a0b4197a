// A small server: for each line with a number it answers how many steps its Collatz sequence takes. `small_server SOCKET`
// listens there and ends, by main's end, when it is sent the line `end`.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

unsigned steps(std::uint64_t n) {
  unsigned count = 0;
  // Which branch is taken is what a profile knows and a compiler does not.
  while (n > 1) {
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    ++count;
  }
  return count;
}

// Serves one client until it leaves; whether it asked the server to end.
bool serve(int client) {
  FILE* in = fdopen(client, "r");
  char line[64];
  bool end = false;
  while (!end && fgets(line, sizeof line, in)) {
    end = std::strcmp(line, "end\n") == 0;
    const std::string answer = end ? "ended\n" : std::to_string(steps(std::strtoull(line, nullptr, 10))) + "\n";
    if (write(client, answer.data(), answer.size()) < 0) break;
  }
  fclose(in);
  return end;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener, 16) != 0) return 1;
  for (bool end = false; !end;) {
    const int client = accept(listener, nullptr, nullptr);
    // A thread for each client, as database servers have it; one after the other is enough here.
    std::thread([&] { end = serve(client); }).join();
  }
  return 0;
}
