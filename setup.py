"""What `pyproject.toml` cannot say: every folder of the pipeline installs below `fusec`."""

from setuptools import find_packages, setup

FOLDERS = ("passes", "codegen", "runtime")  # of the top level, beside `fusec`
INSIDE = [f"{folder}*" for folder in FOLDERS]

setup(
    packages=[*find_packages(include=["fusec*"]),
              *(f"fusec.{name}" for name in find_packages(include=INSIDE))],
    package_dir={"fusec": "fusec", **{f"fusec.{folder}": folder for folder in FOLDERS}},
)
