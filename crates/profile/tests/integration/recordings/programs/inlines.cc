// C++ with functions that the compiler builds into others, in a namespace, a template and a member.
#define APART __attribute__((noinline))
#define INSIDE __attribute__((always_inline)) inline

volatile unsigned long sink;

namespace storage {

template <typename Number>
INSIDE void mix(Number turns) {
    for (Number turn = 0; turn < turns; turn++)
        sink += turn ^ (sink >> 3);
}

struct Page {
    unsigned long turns;
    INSIDE void scan() const { mix<unsigned long>(turns); }
    APART void read() const {
        scan();
        sink++;
    }
};

APART void twice(const Page &page) {
    page.read();
    page.scan();
    sink++;
}

}  // namespace storage

int main() {
    const storage::Page page{400000};
    for (int turn = 0; turn < 300; turn++)
        storage::twice(page);
}
