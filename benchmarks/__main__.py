"""Every benchmark, one after another."""

from benchmarks import engine, replay

if __name__ == "__main__":
    replay.main()
    print()
    engine.main()
